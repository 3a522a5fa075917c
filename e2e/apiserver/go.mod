module github.com/prober-exporter/prober_exporter/e2e/apiserver

go 1.26.0

require (
	github.com/prober-exporter/prober_exporter v0.0.0
	gopkg.in/yaml.v3 v3.0.1
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/prober-exporter/prober_exporter => ../..
