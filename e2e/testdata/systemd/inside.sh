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
	within 60 "$@"
}
at_once() { # the same of a command that succeeds now
	within 0 "$@"
}
within() {
	local deadline=$((SECONDS + $1)) sentence=$2
	shift 2
	until "$@" >/tmp/said 2>&1; do
		if [ $SECONDS -ge $deadline ]; then
			echo "E2E FAIL $sentence"
			sed 's/^/E2E      /' /tmp/said
			journalctl --no-pager -o cat -n 20 -u prober_exporter -u shop | sed 's/^/E2E      /'
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
is() { local want=$1 && shift && [ "$("$@")" = "$want" ]; }
counted() { says $web/metrics "$1"; }

echo "E2E systemd $(systemctl --version | head -1 | cut -d' ' -f2), kernel $(uname -r)"
check "systemd-analyze has nothing to say against the units" \
	systemd-analyze verify /etc/systemd/system/{prober_exporter.service,prober_exporter.socket}
exposure=$(systemd-analyze security --no-pager prober_exporter.service | sed -n 's/.*exposure level[^:]*: \([0-9.]*\).*/\1/p')
echo "E2E exposure level of prober_exporter.service: $exposure"
check "the unit is hardened: exposure below 2.0" awk "BEGIN { exit !(\"$exposure\" != \"\" && $exposure < 2.0) }"

check "the unit runs" systemctl is-active prober_exporter.service
user() { stat -c %U "/proc/$(of MainPID prober_exporter)"; }
check "it has a user of its own" is prober_exporter user
check "shop is ready when it runs" answers $health/ready/shop
check "its restarts are seen by its process, without privileges" counted 'prober_target_info{.*source="process"'
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

# What the agent tells systemd.
check "systemd shows what the page says" is "The target is ready" of StatusText prober_exporter.service

# A reload, a broken file, a mended one. systemd waits until the file has been read.
before=$(of MainPID prober_exporter)
echo 'targets: [{name: shop, readinesProbe: {}}]' >/tmp/broken
cp /etc/prober_exporter/prober.yml /tmp/good
load() { # load FILE
	cp "$1" /etc/prober_exporter/prober.yml
	systemctl reload prober_exporter.service
}
load /tmp/broken
at_once "a broken file changes nothing" counted 'prober_exporter_config_last_reload_successful 0'
check "shop is still ready" answers $health/ready/shop
load /tmp/good
at_once "a mended file is loaded when the reload ends" counted 'prober_exporter_config_last_reload_successful 1'
check "a reload is no restart" is "$before" of MainPID prober_exporter

# What a kubelet would do.
hang() { prober_exporter --health.check=http://127.0.0.1:8080/deadlock >/dev/null 2>&1 & }
condemned() { says $health/live/shop 'answers 503'; }
another() { [ "$(of MainPID shop)" != 0 ] && [ "$(of MainPID shop)" != "$pid" ]; }
state() { is "$1" of ActiveState shop.service; }
begun() { of ExecMainStartTimestampMonotonic shop.service; } # in microseconds
pid=$(of MainPID shop)
hang
check "a shop that hangs is restarted" another
check "it is ready after that" answers $health/ready/shop
check "its restart is counted" counted 'prober_target_restarts_total{.*} 1'
first=$(begun) pid=$(of MainPID shop)
hang
check "it hangs again, and is restarted again" another
check "the back-off is kept: $((($(begun) - first) / 1000)) ms lie between the restarts" [ $(($(begun) - first)) -ge 10000000 ]
check "it is ready after that, too" answers $health/ready/shop
pid=$(of MainPID shop)
sleep 25
check "it was restarted twice, once for each hang" counted 'prober_target_restarts_total{.*} 2'
check "a shop that does not hang is left alone" is "$pid" of MainPID shop

# What somebody has stopped stays down.
hang
check "a third hang, after the back-off, is answered at once" another
check "shop is ready" answers $health/ready/shop
hang
check "a fourth hang has to wait" condemned
systemctl stop shop.service
sleep 45 # longer than the third back-off
check "a shop that somebody has stopped in the back-off is not started" state inactive
systemctl restart prober_exporter.service # the next back-off is the first again

# The agent's user may do what the rule of polkit says, and nothing else.
as_agent() { # as_agent METHOD UNIT
	setpriv --reuid=prober_exporter --regid=prober_exporter --clear-groups busctl --system call org.freedesktop.systemd1 /org/freedesktop/systemd1 \
		org.freedesktop.systemd1.Manager "$1" ss "$2" fail
}
denied() { ! as_agent "$@" >/tmp/denied 2>&1 && grep -qiE 'denied|authentication' /tmp/denied; }
at_once "the agent may try to restart shop" as_agent TryRestartUnit shop.service
sleep 2
check "which starts nothing that was stopped" state inactive
at_once "it may not start shop" denied StartUnit shop.service
systemctl start shop.service
check "shop is ready again" answers $health/ready/shop
for method in StopUnit RestartUnit ReloadUnit; do
	at_once "it may not do $method to shop" denied $method shop.service
done
for unit in other.service e2e.service dbus.service prober_exporter.service; do
	at_once "it may not restart $unit" denied TryRestartUnit $unit
done
systemctl start other.service
other=$(of MainPID other)
sed 's/unit: shop.service/unit: other.service/' /tmp/good >/tmp/wrong
load /tmp/wrong
hang
logged() { journalctl --no-pager -o cat -u prober_exporter | grep -q "$1"; }
check "a unit that the process does not belong to is not restarted, and the log says so" logged 'does not belong to other.service, but to shop.service'
check "that unit runs on" is "$other" of MainPID other

rules=/etc/polkit-1/rules.d/50-prober_exporter.rules
cp $rules /tmp/rules
sed 's/"shop.service"/"none.service"/' /tmp/rules >$rules
sleep 2 # for polkit to read the rule
at_once "without its rule the agent may not restart shop" denied TryRestartUnit shop.service
load /tmp/good
check "a restart that polkit denies fails, and the log says what is missing" logged 'access denied: a rule of polkit must allow'
pid=$(of MainPID shop)
cp /tmp/rules $rules
check "with the rule the restart is made up for" another

# An agent that dies leaves a service that runs, whatever it was about to do.
kill_agent() { systemctl kill --signal=KILL prober_exporter.service; }
# To an agent that has just begun, a shop that hangs is one that starts: its startup probe takes
# 60 s to fail.
later() {
	within 150 "$@"
}
survives() { # survives STEP COMMAND...: the agent is killed once the command succeeds
	local step=$1
	shift
	check "shop is ready" answers $health/ready/shop
	pid=$(of MainPID shop)
	hang
	check "… $step" "$@"
	kill_agent
	later "an agent that is killed $step leaves a shop that is restarted" another
	check "… and runs" state active
}
survives "after its verdict" condemned
mkdir -p /etc/systemd/system/shop.service.d
printf '[Service]\nExecStop=/bin/sleep 4\nExecStartPre=/bin/sleep 4\n' >/etc/systemd/system/shop.service.d/slow.conf
systemctl daemon-reload
survives "while shop is stopped" state deactivating
survives "while shop is started" state activating
check "shop is ready" answers $health/ready/shop
pid=$(of MainPID shop)
hang
check "shop is stopped" state deactivating
systemctl stop prober_exporter.socket prober_exporter.service
check "an agent that is stopped meanwhile leaves a shop that is restarted" another
check "… and runs" state active
rm -r /etc/systemd/system/shop.service.d
systemctl daemon-reload

# Without an agent nothing happens; with one the hang is seen.
pid=$(of MainPID shop)
listens() { (: </dev/tcp/127.0.0.1/8080) 2>/dev/null; }
check "shop listens" listens
hang
sleep 20
check "without an agent nobody is restarted" is "$pid" of MainPID shop
systemctl start prober_exporter.socket prober_exporter.service
later "an agent that comes later sees the hang" another
check "shop is ready" answers $health/ready/shop

# An agent that hangs is restarted by systemd, and shop is not.
pid=$(of MainPID shop) restarts=$(of NRestarts prober_exporter.service)
at_once "the watchdog has not bitten so far" [ "$(journalctl --no-pager -o cat -u prober_exporter | grep -c 'Watchdog timeout')" = 0 ]
kill -STOP "$(of MainPID prober_exporter)"
bitten() { logged 'Watchdog timeout'; }
check "the watchdog sees an agent that is frozen" bitten
check "which is restarted" is $((restarts + 1)) of NRestarts prober_exporter.service
check "and answers again" answers $health/ready/shop
check "shop has not been touched" is "$pid" of MainPID shop

# A broken file at boot: systemd does not give up, and what is mended is loaded.
systemctl stop prober_exporter.socket prober_exporter.service
cp /tmp/broken /etc/prober_exporter/prober.yml
systemctl start prober_exporter.socket
systemctl start --no-block prober_exporter.service
often() { [ "$(of NRestarts prober_exporter.service)" -ge 10 ]; }
check "with a broken file it is started again and again" often
cp /tmp/good /etc/prober_exporter/prober.yml
check "once the file is mended shop is ready" answers $health/ready/shop
check "and Prometheus is answered" counted 'prober_target_ready{.*} 1'

echo "E2E done passed=$passed failed=$failed after $(cut -d' ' -f1 /proc/uptime) s"
