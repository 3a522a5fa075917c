# The image is one static binary on a base that is yours to choose: exec probes find
# the commands of the base image, and nothing else. RELEASE.md says how the digest, which
# is that of the index of all architectures, is brought up to date.
ARG BASE=busybox:1.37.0@sha256:bdf57e528e45e4433820e045b29b4597825a1c9e38353532d90a01445013f82e
FROM ${BASE}

LABEL org.opencontainers.image.title="prober_exporter" \
      org.opencontainers.image.description="Startup, readiness and liveness probes with the kubelet's own rules, for Prometheus" \
      org.opencontainers.image.licenses="Apache-2.0"

# The static binary of `make build`, or of `make dist` for another architecture.
ARG BINARY=prober_exporter
COPY ${BINARY} /bin/prober_exporter

USER 65534:65534
EXPOSE 9708 9709
ENTRYPOINT ["/bin/prober_exporter"]
CMD ["--config.file=/etc/prober_exporter/prober.yml"]
