# An image with everything: docker build -t mt-scaffold .
# For GPUs: --build-arg BASE=nvidia/cuda:12.8.1-base-ubuntu24.04; only to segment text: --build-arg EXTRAS=documents.
# docs/install.md has more.
ARG BASE=debian:trixie-slim

FROM ${BASE} AS build
ARG EXTRAS=fairseq,workflow,analysis,documents
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/venv/bin:$PATH
# Versions of compilers are those of the base.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/mt_scaffold
COPY constraints.txt ./
RUN python3 -m venv /opt/venv \
    && pip install -c constraints.txt pip setuptools wheel
# fairseq is built from source against the torch already installed, not against a second copy.
RUN case ",${EXTRAS}," in *,fairseq,*) \
        pip install -c constraints.txt torch numpy Cython pybind11 \
        && pip install -c constraints.txt --no-build-isolation fairseq-fixed ;; \
    esac
COPY . .
RUN pip install -c constraints.txt ".[${EXTRAS}]"

FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home mt \
    && install --directory --owner=mt --group=mt /work
COPY --from=build /opt/venv /opt/venv
COPY scripts /opt/mt_scaffold/scripts
COPY configs /opt/mt_scaffold/configs
# Caches work for any user that `docker run --user` names.
ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/opt/mt_scaffold/scripts XDG_CACHE_HOME=/tmp/cache MPLCONFIGDIR=/tmp/matplotlib
USER mt
WORKDIR /work
CMD ["mt-scaffold", "--help"]
