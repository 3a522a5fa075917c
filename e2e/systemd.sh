#!/usr/bin/env bash
# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the units of examples/systemd under a real systemd, in a virtual machine (without
# hardware support if there is none). It installs what it needs; the file system of the
# machine is made once, in bin/systemd.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=e2e/needs.sh
. e2e/needs.sh

[ "$(uname -s)" = Linux ] || missing "it needs Linux"
[ "$(id -u)" = 0 ] || missing "it needs root, to make a file system"
[ "$(uname -m)" = x86_64 ] || missing "it knows the virtual machine of x86_64 only"

kernel() { find /boot -name "vmlinuz-*-cloud-amd64" | sort --version-sort | tail -1; }
needs qemu-system-x86_64=qemu-system-x86 debootstrap=debootstrap systemctl=systemd mkfs.ext4=e2fsprogs /usr/share/doc/linux-image-cloud-amd64=linux-image-cloud-amd64
kernel=$(kernel)
release=${kernel#/boot/vmlinuz-}

# Type=notify-reload needs systemd 253 or later.
codename=trixie
rootfs=bin/systemd/$codename
if [ ! -e $rootfs/.complete ]; then
	rm -rf $rootfs
	mkdir -p $rootfs
	# The mirror that apt uses.
	# shellcheck disable=SC2016 # apt-get's own variable
	mirror=$(apt-get indextargets --format '$(SITE)' 'Identifier: Packages' | grep -v security | head -1)
	debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,polkitd,libpam-systemd,procps $codename $rootfs "$mirror" >bin/systemd/debootstrap.log ||
		missing "debootstrap fails, see bin/systemd/debootstrap.log"
	touch $rootfs/.complete
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$work/root/usr/local/bin/" . ./examples/shop
install -D -m 644 -t "$work/root/etc/systemd/system" examples/systemd/*.service examples/systemd/*.socket e2e/testdata/systemd/*.service
install -D -m 644 -t "$work/root/etc/polkit-1/rules.d" examples/systemd/*.rules
install -D -m 644 examples/systemd/prober.yml "$work/root/etc/prober_exporter/prober.yml"
install -D -m 644 examples/systemd/sysconfig.prober_exporter "$work/root/etc/sysconfig/prober_exporter"
install -D -m 644 examples/systemd/sysusers.prober_exporter "$work/root/etc/sysusers.d/prober_exporter.conf"
install -D -m 755 e2e/testdata/systemd/inside.sh "$work/root/e2e/inside.sh"
chmod 755 "$work/root"
cp -a $rootfs "$work/image"
cp -a --no-preserve=ownership "$work/root/." "$work/image/"
systemd-sysusers --root="$work/image" prober_exporter.conf
mkdir -p "$work/image/usr/lib/modules"
cp -a "/lib/modules/$release" "$work/image/usr/lib/modules/"
# By default systemd gives up after five starts in ten seconds, for which this machine may be
# too slow: it counts for an hour.
mkdir -p "$work/image/etc/systemd/system.conf.d"
printf '[Manager]\nDefaultStartLimitIntervalSec=1h\n' >"$work/image/etc/systemd/system.conf.d/limit.conf"
# The console is the test's.
systemctl --quiet --root="$work/image" mask serial-getty@ttyS0.service
systemctl --quiet --root="$work/image" enable prober_exporter.socket prober_exporter.service e2e.service
ln -sf ../shop.service "$work/image/etc/systemd/system/multi-user.target.wants/shop.service"
truncate --size=2G "$work/root.img"
mkfs.ext4 -q -d "$work/image" "$work/root.img"

accel=tcg
[ -w /dev/kvm ] && grep -qE '^flags.* (vmx|svm)( |$)' /proc/cpuinfo && accel=kvm
timeout 1800 qemu-system-x86_64 -accel $accel -smp 2 -m 1024 -nographic -no-reboot -nic none \
	-kernel "$kernel" -initrd "/boot/initrd.img-$release" \
	-append "console=ttyS0 quiet panic=-1 root=/dev/vda rw" \
	-drive "file=$work/root.img,if=virtio,format=raw,cache=unsafe" </dev/null |
	tee bin/systemd/console.log | sed -un 's/\r$//; s/^.*E2E //p'
grep -q 'E2E done passed=[1-9][0-9]* failed=0 ' bin/systemd/console.log || {
	echo "e2e-systemd failed: see bin/systemd/console.log" >&2
	exit 1
}
