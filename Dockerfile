# The image is one static binary on a base that is yours to choose: exec probes find
# the commands of the base image, and nothing else.
ARG BASE=busybox:stable
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
