# Boots a Debian system as the first process of its own namespaces. What it changes lies in memory
# and is gone when it ends. To be run by `unshare --mount --pid --fork --ipc --uts`, in the network
# namespace of the box.
#
#     sh boot.sh SYSTEM PLACE GROUP PACKAGE
set -e
system=$1 place=$2 group=$3 package=$4

mount --make-rprivate /
mount -t tmpfs tmpfs "$place"
cd "$place"
mkdir changes work root proc groups
mount -t overlay -o "lowerdir=$system,upperdir=changes,workdir=work" overlay root

# systemd wants the root of a hierarchy of control groups
mount -t cgroup2 cgroup2 groups
mkdir -p "groups/$group"
echo 0 >"groups/$group/cgroup.procs"

cp "$package" root/root/
# of the kernel that all share, only what belongs to the network namespace may be set
mount -t proc proc proc
mount -t proc proc root/proc
mount --bind root/proc/sys root/proc/sys
mount -o remount,bind,ro root/proc/sys
mount --bind proc/sys/net root/proc/sys/net
mount -t sysfs sysfs root/sys
mount -t tmpfs -o mode=755 tmpfs root/run
mount -t tmpfs -o mode=755 tmpfs root/dev
mkdir root/dev/pts root/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts root/dev/pts
ln -s pts/ptmx root/dev/ptmx
for node in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
    set -- $node
    mknod -m 666 "root/dev/$1" c "$2" "$3"
done

# what would reach beyond these namespaces, or fetch updates meanwhile
for unit in systemd-sysctl.service systemd-modules-load.service systemd-journald-audit.socket \
    sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount \
    dev-hugepages.mount dev-mqueue.mount apt-daily.timer apt-daily-upgrade.timer getty.target; do
    ln -sf /dev/null "root/etc/systemd/system/$unit"
done

cd root
exec unshare --cgroup sh -c '
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    pivot_root . .
    umount -l .
    exec chroot . /usr/bin/env -i container=weir PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        /lib/systemd/systemd --system --show-status=no'
