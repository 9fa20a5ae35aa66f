// Package cluster is the hardware: racks, nodes and GPUs, what of it is free, and the rules that choose which
// GPUs a gang gets. There is no time in it: package sim says when. A cluster is a tree (site, racks, nodes,
// GPUs) or a plain counter ("pool:256"), where GPUs have no identity.
//
// GPUs are numbered densely by rack, node and index, so neighbours in the numbering are neighbours in the tree.
// A GPU can be shared in thousandths. A job without GPUs takes cores and memory of one node, its Slot. Equal clusters
// differ in nothing but names: every tie is broken by the lowest number.
//
// Virtual clusters divide the nodes: some own theirs, the others share what nobody owns, each within a quota. A
// node can be down, and has no room then. Where there are neither, neither costs anything. CopyFrom makes a second
// cluster of the same Spec a place to plan on.
package cluster
