# docker build --tag=steadyscale:0.1.0 --build-arg=REVISION="$(git rev-parse HEAD)" .
#
# Two stages: what installs stays behind. The image holds Python, the package and what it needs; no compiler, no pip. It
# runs as nobody in particular, writes nothing but /tmp, and runs the same with a read-only root filesystem.

FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY adapter adapter
COPY autoscaler autoscaler
COPY manifests/crds manifests/crds
RUN python -m venv /opt/steadyscale
RUN /opt/steadyscale/bin/pip install --constraint=constraints.txt '.[all]'
# What is compiled now need not be compiled, in vain, at every start on a read-only filesystem.
RUN python -m compileall -q /opt/steadyscale/lib \
    && /opt/steadyscale/bin/pip uninstall --yes pip setuptools

FROM python:3.11-slim-bookworm
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="steadyscale" \
      org.opencontainers.image.description="External metrics for Kubernetes, and an autoscaler that fails safely and explains itself" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/python:3.11-slim-bookworm"
RUN pip uninstall --yes pip setuptools wheel
COPY --from=build /opt/steadyscale /opt/steadyscale
ENV PATH=/opt/steadyscale/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 6443
# For who runs it without Kubernetes, which asks /livez and /readyz itself.
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s \
    CMD ["python", "-c", "import ssl, urllib.request as web; web.urlopen('https://localhost:6443/livez', timeout=4, context=ssl._create_unverified_context())"]
ENTRYPOINT ["steadyscale"]
CMD ["--help"]
