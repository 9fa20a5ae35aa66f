// Package cluster models the hardware: racks, nodes and GPUs, what is free, and the rules that choose which GPUs a
// gang gets. It has no notion of time; package sim adds that. A cluster is a tree (site, racks, nodes, GPUs) or a
// plain counter ("pool:256"), where GPUs have no identity.
//
// GPUs are numbered densely by rack, node and index, so neighbours in the numbering are neighbours in the tree. A GPU
// can be shared in thousandths. A job without GPUs takes cores and memory of one node, its Slot. Clusters with equal
// hardware behave alike: every tie is broken by the lowest number.
//
// Virtual clusters divide the nodes. Some own nodes; the others share the nodes without an owner, each within a quota. Or
// they name their nodes, which others may name too, as the partitions of Slurm do.
// A node that is down has no room. A cluster without virtual clusters or down nodes pays nothing for either. CopyFrom
// makes another cluster of the same Spec a scratch copy for planning, and Part one that has only the nodes of one
// virtual cluster.
package cluster
