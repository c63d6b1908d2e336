# An image for experiments: docker build -t mt-scaffold .
# To segment text only: --build-arg EXTRAS=documents. docs/install.md has more.
FROM debian:trixie-slim AS build
# Extras of setup.cfg, separated by spaces: at least one.
ARG EXTRAS="fairseq workflow analysis documents transformers unigram"
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/venv/bin:$PATH
# The compiler's version is Debian's.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/mt_scaffold
# As in the Makefile: the pinned pip, which checks the hashes of constraints.txt, then the torch for this machine.
COPY constraints.txt setup.cfg ./
COPY tools/requirements.py tools/
RUN python3 -m venv /opt/venv \
    && sed -n '/^pip==/,/[^\\]$/p' constraints.txt > /tmp/pip.txt \
    && pip install --require-hashes -r /tmp/pip.txt \
    && pip install --require-hashes -c constraints.txt setuptools wheel nanobind
# fairseq is built from source against the torch already installed, not against a second copy; without CUDA_HOME, which
# would have it compile CUDA files that its archive lacks.
RUN case " ${EXTRAS} " in *" fairseq "*) \
        pip install "$(sed -n 's/^\(torch==[^ ;]*\).*/\1/p' constraints.txt)" \
        && pip install --require-hashes -c constraints.txt numpy Cython \
        && env -u CUDA_HOME pip install --require-hashes -c constraints.txt --no-build-isolation fairseq-fixed ;; \
    esac
# hadolint ignore=SC2086
RUN python tools/requirements.py ${EXTRAS} > /tmp/requirements.txt \
    && pip install --require-hashes -c constraints.txt -r /tmp/requirements.txt
COPY . .
RUN pip install --no-deps --no-build-isolation .

FROM debian:trixie-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 mt \
    && install --directory --owner=mt --group=mt /work
COPY --from=build /opt/venv /opt/venv
COPY configs /opt/mt_scaffold/configs
# On GPUs (docker run --gpus all), PyTorch's own CUDA uses the host's driver.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
# Caches that any user of `docker run --user` can write.
ENV PATH=/opt/venv/bin:$PATH XDG_CACHE_HOME=/tmp/cache MPLCONFIGDIR=/tmp/matplotlib
USER 10001
WORKDIR /work
CMD ["mt-scaffold", "--help"]
