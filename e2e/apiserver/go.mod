module github.com/prober-exporter/prober_exporter/e2e/apiserver

go 1.26.0

require (
	github.com/prober-exporter/prober_exporter v0.0.0
	gopkg.in/yaml.v3 v3.0.1
)

require (
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/mdlayher/netlink v1.11.2 // indirect
	github.com/mdlayher/socket v0.6.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/prober-exporter/prober_exporter => ../..
