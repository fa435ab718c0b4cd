{{/* The labels of every object. */}}
{{- define "steadyscale.labels" -}}
app.kubernetes.io/name: steadyscale
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The configuration, with a self-managed certificate if no tls is set. */}}
{{- define "steadyscale.config" -}}
{{- $managed := dict "tls" (dict "selfManaged" (dict "namespace" .Release.Namespace)) -}}
{{- $serving := .Values.config.serving | default dict -}}
{{- if not (hasKey $serving "tls") }}{{ $serving = merge (deepCopy $serving) $managed }}{{ end -}}
{{- toYaml (merge (dict "serving" $serving) .Values.config) -}}
{{- end }}
