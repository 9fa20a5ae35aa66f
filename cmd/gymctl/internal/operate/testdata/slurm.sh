#!/usr/bin/env bash
# A private Slurm on this machine, without systemd: a controller and two nodes on loopback, all files in one folder.
#
#   slurm.sh start DIR    starts it in an empty folder and prints the path of its slurm.conf, for $SLURM_CONF
#   slurm.sh stop DIR     ends it, by the process ids that it noted
#
# It has two partitions, low and high: a job in high takes the nodes of one in low, which is then requeued. Debian has what
# it needs in slurmctld, slurmd, slurm-client and munge; slurmd -N, which runs several nodes on a machine, must be built in.
set -euo pipefail
CPUS=4 # of each node, however many this machine has

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start() {
	mkdir -p "$1"
	[ -z "$(ls -A "$1")" ] || { echo "slurm.sh: $1 is not empty" >&2; exit 1; }
	mkdir "$1/state"
	dir="$(cd "$1" && pwd)"
	for program in munged mungekey slurmctld slurmd sinfo; do
		command -v "$program" >/dev/null || { echo "slurm.sh needs $program (Debian: apt-get install slurmctld slurmd slurm-client munge)" >&2; exit 1; }
	done
	chmod 755 "$dir"
	cat >"$dir/slurm.conf" <<-CONF
		ClusterName=private
		SlurmctldHost=$(hostname -s)(127.0.0.1)
		SlurmctldPort=$(free_port)
		SlurmctldParameters=enable_configless
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge.socket
		CredType=cred/munge
		SlurmUser=$(id -un)
		SlurmdUser=$(id -un)
		StateSaveLocation=$dir/state
		SlurmctldPidFile=$dir/slurmctld.pid
		SlurmctldLogFile=$dir/slurmctld.log
		SlurmdSpoolDir=$dir/%n
		SlurmdPidFile=$dir/%n.pid
		SlurmdLogFile=$dir/%n.log
		SlurmdParameters=config_overrides
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		MpiDefault=none
		ReturnToService=2
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		PreemptType=preempt/partition_prio
		PreemptMode=REQUEUE
		JobRequeue=1
		KillWait=30
		SchedulerParameters=bf_interval=1,sched_interval=1
		NodeName=127.0.0.2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$(free_port) CPUs=$CPUS
		NodeName=127.0.0.3 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$(free_port) CPUs=$CPUS
		PartitionName=low Nodes=127.0.0.[2-3] Default=YES PriorityTier=1 GraceTime=0
		PartitionName=high Nodes=127.0.0.[2-3] PriorityTier=10 PreemptMode=OFF
	CONF
	export SLURM_CONF="$dir/slurm.conf"
	mungekey --create --keyfile="$dir/munge.key"
	munged --key-file="$dir/munge.key" --socket="$dir/munge.socket" --pid-file="$dir/munge.pid" \
		--log-file="$dir/munge.log" --seed-file="$dir/munge.seed" >&2
	slurmctld -c -f "$SLURM_CONF" >&2
	for node in 127.0.0.2 127.0.0.3; do
		mkdir -p "$dir/$node"
		slurmd -N "$node" -f "$SLURM_CONF" >&2
	done
	for _ in $(seq 100); do
		[ "$(sinfo -h -N -p low -t idle -o %N 2>/dev/null | wc -l)" = 2 ] && { echo "$SLURM_CONF"; return; }
		sleep 0.2
	done
	echo "the nodes are not idle after 20 s; see the logs in $dir" >&2
	stop "$dir"
	exit 1
}

stop() {
	for name in 127.0.0.2 127.0.0.3 slurmctld munge; do
		[ -s "$1/$name.pid" ] || continue
		pid="$(cat "$1/$name.pid")"
		kill "$pid" 2>/dev/null || continue
		for _ in $(seq 50); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -9 "$pid" 2>/dev/null || true
	done
}

case "${1:-} ${2:-}" in
"start "?* | "stop "?*) "$1" "$2" ;;
*)
	echo "usage: slurm.sh start|stop DIR" >&2
	exit 2
	;;
esac
