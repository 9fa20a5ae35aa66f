package run

import (
	"strings"

	"clustergym/experiments/workload"
	"clustergym/nets/kernel"
)

// KernelSets are the values of Config.Kernels: auto, and all sets that there are, whether or not this machine can run
// them.
func KernelSets() []string { return []string{kernel.Auto, "avx512", "avx2", "portable"} }

// UseKernels computes with the set of that name from now on. auto leaves the one in use, which is the fastest unless
// somebody chose otherwise. It must not be called while something is computed, unless that set is in use already. A set
// that this machine cannot run is an *InputError.
func UseKernels(name string) error {
	if name == kernel.Auto || name == kernel.Set() {
		return nil
	}
	if err := kernel.Use(name); err != nil {
		return workload.Mistake("kernels: got %q, want %s or a set that this machine can run: %s", name, kernel.Auto, strings.Join(kernel.Sets(), ", "))
	}
	return nil
}
