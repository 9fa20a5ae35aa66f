package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"clustergym/internal/fault"
	"clustergym/live/kube"
)

// kubeFlags are the flags that say which Kubernetes cluster is meant, and how its objects are read.
type kubeFlags struct {
	config, context             string
	namespaces, gpus, tolerated []string
}

func (k *kubeFlags) add(f *pflag.FlagSet) {
	f.StringVar(&k.config, "kubeconfig", "", "connect as `FILE` says (default $KUBECONFIG, a pod's service account, or .kube/config in your home)")
	f.StringVar(&k.context, "context", "", "use context `NAME` of the kubeconfig (default its current one)")
	f.StringArrayVar(&k.namespaces, "namespace", nil, "look at namespace `NAME`, can be repeated (default all, which takes rights in the whole cluster)")
	f.StringArrayVar(&k.gpus, "gpu-resource", nil, "count resource `NAME` as GPUs, can be repeated (default nvidia.com/gpu and amd.com/gpu)")
}

// find returns the configuration of the cluster: that of the flag, of $KUBECONFIG, of the pod in which this runs, or of the home.
func (k *kubeFlags) find() (kube.Config, error) {
	c, err := k.place()
	if err != nil {
		return c, fault.Mistakef("%w", err)
	}
	c.Namespaces = k.namespaces
	c.Reading.GPUs, c.Tolerated = k.gpus, k.tolerated
	return c, nil
}

func (k *kubeFlags) place() (kube.Config, error) {
	file := k.config
	if file == "" {
		file = os.Getenv("KUBECONFIG")
	}
	if file != "" {
		return kube.Kubeconfig(file, k.context)
	}
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" && k.context == "" {
		return kube.InCluster(host, os.Getenv("KUBERNETES_SERVICE_PORT"), kube.ServiceAccountDir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return kube.Config{}, err
	}
	return kube.Kubeconfig(filepath.Join(home, ".kube", "config"), k.context)
}
