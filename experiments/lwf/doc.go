// Package lwf reproduces LWF-κ, AdaDUAL and Ada-SRSF (Wang, Shi, Wang, Chu, arXiv 2002.10105) on the machine of its
// authors' program (peer/lwf), as published and with a question that does not move transfers, and compares that machine
// with the fluid contention of simulator/sim. README.md says which parts are whose.
package lwf
