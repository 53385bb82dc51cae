# Makes the kernel and the system of the virtual machine, in /guest of the image, from the
# scripts in /tmp/guest.
mkdir -p /guest /tmp/debs/system && cd /tmp/debs/system
kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -1)
apt-get download -qq "$kernel"
dpkg-deb -x linux-image-*.deb .
mv boot/vmlinuz-* /guest/vmlinuz
mkdir -p root/bin root/etc root/modules root/root root/usr/sbin
for module in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net virtio_blk; do
	found=$(find lib/modules -name $module.ko)
	[ -n "$found" ] || continue # built in
	mv "$found" root/modules
	echo $module.ko >>root/modules/order
done
cp /bin/busybox root/bin
cp /usr/sbin/dropbear root/usr/sbin
for library in $(ldd /usr/sbin/dropbear | grep -o '/[^ ]*'); do
	mkdir -p "root${library%/*}"
	cp -L "$library" "root$library"
done
mv /tmp/guest/init root/init
mv /tmp/guest/* root/bin
chmod 755 root/init root/bin/*
echo 'setup::0:0::/root:/bin/sh' >root/etc/passwd
echo 'root:x:0:' >root/etc/group
echo /bin/sh >root/etc/shells
printf "export PS1='vm# ' PATH=/bin:/sbin:/usr/sbin:/usr/bin\nstty cols 200\n" >root/etc/profile
(cd root && find . | busybox cpio -o -H newc) >/guest/initrd
qemu-img create -q -f qcow2 /smallvm-1.0.qcow2 64M
rm -rf /tmp/guest
