#!/bin/bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the machine, under its systemd: one line "ok" or "FAIL" a promise, and in the end
# how many there were.
set -u
health=http://127.0.0.1:9708
web=http://127.0.0.1:9709
passed=0 failed=0

check() { # check SENTENCE COMMAND...: the command succeeds within 60 s
	local sentence=$1 deadline=$((SECONDS + 60))
	shift
	until "$@" >/tmp/said 2>&1; do
		if [ $SECONDS -ge $deadline ]; then
			echo "E2E FAIL $sentence"
			sed 's/^/E2E      /' /tmp/said
			journalctl --no-pager -o cat -n 20 -u prober_exporter -u shop -u prober-restart@shop | sed 's/^/E2E      /'
			failed=$((failed + 1))
			return
		fi
		sleep 0.2
	done
	echo "E2E ok   $sentence"
	passed=$((passed + 1))
}
# The client of these checks is the exporter itself: the machine has no other.
answers() { prober_exporter --health.check="$1"; }
says() { answers "$1" 2>&1 | grep -q "$2"; }
of() { systemctl show --value --property="$1" "$2"; }
is() { [ "$($2 "$3" "$4")" = "$1" ]; }
counted() { says $web/metrics "$1"; }

echo "E2E systemd $(systemctl --version | head -1 | cut -d' ' -f2), kernel $(uname -r)"
check "systemd-analyze has nothing to say against the units" \
	systemd-analyze verify /etc/systemd/system/{prober_exporter.service,prober_exporter.socket,prober-restart@shop.service}
exposure=$(systemd-analyze security --no-pager prober_exporter.service | sed -n 's/.*exposure level[^:]*: \([0-9.]*\).*/\1/p')
echo "E2E exposure level of prober_exporter.service: $exposure"
check "the unit is hardened: exposure below 2.0" awk "BEGIN { exit !(\"$exposure\" != \"\" && $exposure < 2.0) }"

check "the unit runs" systemctl is-active prober_exporter.service
dynamic() { [ "$(stat -c %u "/proc/$(of MainPID prober_exporter)")" -ge 61184 ]; }
check "it is no user of the machine's" dynamic
check "shop is ready when it runs" answers $health/ready/shop
check "its restarts are seen by its socket, without privileges" counted 'prober_target_info{.*source="listener"'
check "Prometheus is answered on the socket that systemd holds" counted 'prober_target_ready{.*} 1'

# The exporter restarts: who connects meanwhile waits, nobody is refused.
refused=0
(
	end=$((SECONDS + 6))
	while [ $SECONDS -lt $end ]; do
		(: </dev/tcp/127.0.0.1/9709) 2>/dev/null || echo refused >>/tmp/refused
	done
) &
sleep 1
systemctl restart prober_exporter.service
wait $!
[ -e /tmp/refused ] && refused=$(wc -l </tmp/refused)
check "while it restarts no connection of Prometheus is refused" [ "$refused" = 0 ]
check "shop is ready again" answers $health/ready/shop

# A reload, a broken file, a mended one.
before=$(of MainPID prober_exporter)
echo 'targets: [{name: shop, readinesProbe: {}}]' >/tmp/broken
cp /etc/prober_exporter/prober.yml /tmp/good
cp /tmp/broken /etc/prober_exporter/prober.yml
systemctl reload prober_exporter.service
check "a broken file changes nothing" counted 'prober_exporter_config_last_reload_successful 0'
check "shop is still ready" answers $health/ready/shop
cp /tmp/good /etc/prober_exporter/prober.yml
systemctl reload prober_exporter.service
check "a mended file is loaded" counted 'prober_exporter_config_last_reload_successful 1'
check "a reload is no restart" is "$before" of MainPID prober_exporter

# What a kubelet would do.
pid=$(of MainPID shop)
prober_exporter --health.check=http://127.0.0.1:8080/deadlock >/dev/null 2>&1 &
another() { [ "$(of MainPID shop)" != 0 ] && [ "$(of MainPID shop)" != "$pid" ]; }
check "a shop that hangs is restarted" another
check "it is ready after that" answers $health/ready/shop
check "its restart is counted" counted 'prober_target_restarts_total{.*} 1'
sleep 10
check "it was restarted once" counted 'prober_target_restarts_total{.*} 1'

# A service that the exporter does not know is left alone.
ln -s shop.service /etc/systemd/system/other.service
systemctl daemon-reload
systemctl start prober-restart@other
check "the liveness of an unknown target is 200" says $health/live/other '^\[?\]other unknown target: not probed$'
pid=$(of MainPID shop)
sleep 10
check "a service that it does not know is not restarted" is "$pid" of MainPID shop
check "its requests are counted" counted 'prober_exporter_unknown_target_requests_total{endpoint="live"} [1-9]'

pid=$(of MainPID shop)
systemctl stop prober_exporter.socket prober_exporter.service
sleep 15
check "without an exporter nobody is restarted" is "$pid" of MainPID shop

# A broken file at boot: systemd does not give up, and what is mended is loaded.
cp /tmp/broken /etc/prober_exporter/prober.yml
systemctl start prober_exporter.socket prober_exporter.service
often() { [ "$(of NRestarts prober_exporter.service)" -ge 10 ]; }
check "with a broken file it is started again and again" often
cp /tmp/good /etc/prober_exporter/prober.yml
check "once the file is mended shop is ready" answers $health/ready/shop
check "and Prometheus is answered" counted 'prober_target_ready{.*} 1'

echo "E2E done passed=$passed failed=$failed after $(cut -d' ' -f1 /proc/uptime) s"
