module github.com/prober-exporter/prober_exporter/e2e/kubernetes

go 1.26.0

require gopkg.in/yaml.v3 v3.0.1
