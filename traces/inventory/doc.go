// Package inventory reads lists of a cluster's machines: what the cluster's own programs print, and lists that were
// published with workload traces. It returns what a file says, node by node. Other packages turn that into a cluster to
// simulate and add what the file does not say. Read finds the format by the content. A cluster's own programs are:
//
//	sinfo      sinfo -N -o "%N %G %c %m %f %P", in any order of columns, with a header: NODELIST GRES CPUS MEMORY
//	           AVAIL_FEATURES PARTITION. A node of several partitions has a row in each.
//	scontrol   scontrol show node, on one line for each node or on several, or as JSON; also lines of slurm.conf
//	kubernetes kubectl get nodes -o json
//	topology   topology.conf of Slurm, or scontrol show topology: Rack is the switch of a node, Pod the switch above. No
//	           GPUs; Racked takes it and a list of nodes together.
//
// Published lists are CSV, with columns in any order:
//
//	openb     sn, cpu_milli, memory_mib, gpu, model
//	          Alibaba cluster-trace-gpu-v2023, for research and study. model is empty for a node without GPU. The
//	          list of the nodes with GPUs has its own numbering: its names do not match those of the list of all nodes.
//	pai       machine, gpu_type, cap_cpu (vCPU), cap_mem (GiB), cap_gpu
//	          Alibaba cluster-trace-gpu-v2020, CC BY 4.0. Type CPU without GPUs is read as no type; MISC is a type.
//	spot      gpu_model, gpu_capacity_num, cpu_num, node_name
//	          Alibaba cluster-trace-v2026-spot-gpu, for research and study. No memory.
//	lingjun   ip (a hash), DSW, PSW, ASW
//	          Alibaba lingjun-dataset-2023, Apache-2.0. The host's place in a Clos network: Rack is its top-of-rack
//	          switch (ASW), Pod the aggregation switch (PSW) and Core the core switch (DSW) above. Each ASW name
//	          occurs under every PSW, with at most 8 hosts for each pair, so most likely the pair identifies a
//	          switch. No GPUs, cores or memory.
//	philly    machineId, number of GPUs, and in the list as shipped single GPU mem ("12GB")
//	          Microsoft Philly, CC BY 4.0. The list as shipped and the one revised after telemetry disagree. Blanks
//	          after commas and an unnamed column of row numbers are ignored. No types, cores or memory.
//	tiresias  num_switch, num_node_p_switch, num_gpu_p_node, num_cpu_p_node, mem_p_node (GB)
//	          Specifications of Tiresias' simulator, Apache-2.0: a row is several racks of equal nodes.
//	helios    a column of virtual clusters without name, num
//	          Configurations of SenseTime Helios' virtual clusters (Lucid's: for non-commercial use): nodes of each.
//	philly-vc vc, node num
//	          The same for Philly.
//
// Of these the last two have no nodes, only virtual clusters; the others have no virtual clusters.
package inventory
