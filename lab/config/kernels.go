package config

import (
	"strings"

	"clustergym/internal/fault"
	"clustergym/nets/kernel"
)

// KernelSets returns the values of Config.Kernels: auto, and every set, including those that this machine cannot run.
func KernelSets() []string { return []string{kernel.Auto, "avx512", "avx2", "portable"} }

// UseKernels makes all later computations use the kernels called name. auto keeps the current set, which is the fastest
// one unless another was chosen. It must not be called during a computation unless that set is in use already. If this
// machine cannot run the set, the error is a *fault.Mistake.
func UseKernels(name string) error {
	if name == kernel.Auto || name == kernel.Set() {
		return nil
	}
	if err := kernel.Use(name); err != nil {
		return fault.Mistakef("kernels: got %q, want %s or a set that this machine can run: %s", name, kernel.Auto,
			strings.Join(kernel.Sets(), ", "))
	}
	return nil
}
