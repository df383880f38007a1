# Images of Tidework, from one file:
#   docker build --target worker   --tag tidework/worker:0.1.0   .
#   docker build --target operator --tag tidework/operator:0.1.0 .
# An application's image starts from `worker` and adds its code to /app: examples/on-kubernetes/Dockerfile.
# Any engine builds it: no syntax line, nothing that only BuildKit knows. BASE_IMAGE is a Python on Debian.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# What is seldom changed comes first: a layer of dependencies lasts until a pyproject.toml or all.txt changes.
COPY requirements requirements
COPY worker/pyproject.toml worker/pyproject.toml
COPY operator/pyproject.toml operator/pyproject.toml
RUN python requirements/chosen.py hatchling >build.txt \
 && pip install --require-hashes --no-deps -r build.txt
# --ignore-installed: what this stage has is not what the image has
RUN python requirements/chosen.py worker[worker] >worker.txt \
 && pip install --require-hashes --no-deps --ignore-installed --prefix /worker -r worker.txt
# kubernetes has a module for each kind of object, imported when first used: compiled, they would be 50 MB.
RUN python requirements/chosen.py operator >operator.txt \
 && pip install --require-hashes --no-deps --ignore-installed --no-compile --prefix /operator -r operator.txt \
 && python -m compileall -q -x '/kubernetes/(aio/)?client/(api|models)/' /operator
COPY worker worker
COPY operator operator
RUN pip wheel --no-deps --no-build-isolation --wheel-dir wheels ./worker ./operator \
 && pip install --no-index --no-deps --prefix /worker wheels/tidework-*.whl \
 && pip install --no-index --no-deps --prefix /operator wheels/*.whl \
 && find /worker /operator -depth -type d -name tests -exec rm -r {} +

FROM ${BASE_IMAGE} AS runtime
# As PID 1 and without -g, tini passes signals to the one process that it starts, and reaps orphans.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt /var/log/dpkg.log \
 && echo 'tidework:x:65532:65532:Tidework:/tmp:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'tidework:x:65532:' >>/etc/group
COPY LICENSE NOTICE /usr/share/doc/tidework/
# The root file system may be read-only: nothing is written but what a program puts into /tmp.
ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/tini", "--"]
# where this tree is published, for the label that registries show
ARG SOURCE=unpublished
LABEL org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}"

FROM runtime AS operator
COPY --from=build /operator /usr/local
LABEL org.opencontainers.image.title="Tidework operator"
USER 65532:65532
CMD ["tidework-operator"]

FROM runtime AS worker
COPY --from=build /worker /usr/local
LABEL org.opencontainers.image.title="Tidework worker"
# an application's modules are found here
ENV PYTHONPATH=/app
WORKDIR /app
USER 65532:65532
CMD ["tidework", "worker"]
