# docker build --tag=steadyscale:0.1.0 --build-arg=REVISION="$(git rev-parse HEAD)" .
#
# The first stages install; the image has only Python, the package and its dependencies, no compiler and no pip. It runs as
# a user that is not root, writes only to /tmp, and needs no writable root filesystem.

# `python -m tools.release.base_image` adds the digest of the tag; `make release` refuses a base image without one.
# Dependabot renews the digest.
FROM python:3.11-slim-bookworm AS base

FROM base AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_REQUIRE_VIRTUALENV=1
WORKDIR /src
COPY requirements.txt requirements-build.txt ./
RUN python -m venv /opt/steadyscale && python -m venv /opt/build
# Wheels with the hashes of the lock files only: nothing is downloaded that no hash covers, and nothing is built.
RUN /opt/steadyscale/bin/pip install --require-hashes --only-binary=:all: --requirement=requirements.txt
RUN /opt/build/bin/pip install --require-hashes --only-binary=:all: --requirement=requirements-build.txt
COPY pyproject.toml README.md LICENSE ./
COPY adapter adapter
COPY autoscaler autoscaler
COPY manifests/crds manifests/crds
RUN /opt/build/bin/hatchling build --target=wheel --directory=wheels \
    && /opt/steadyscale/bin/pip install --no-deps --no-index wheels/*.whl \
    && /opt/steadyscale/bin/pip check
# Compile now: a read-only filesystem cannot store what each start would compile.
RUN python -m compileall -q /opt/steadyscale/lib \
    && /opt/steadyscale/bin/pip uninstall --yes pip setuptools

FROM base
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
# For container runtimes; Kubernetes uses the probes of the Deployment.
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s \
    CMD ["python", "-c", "import ssl, urllib.request as web; web.urlopen('https://localhost:6443/livez', timeout=4, context=ssl._create_unverified_context())"]
ENTRYPOINT ["steadyscale"]
CMD ["--help"]
