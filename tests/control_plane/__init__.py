"""A real Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager, without nodes."""
