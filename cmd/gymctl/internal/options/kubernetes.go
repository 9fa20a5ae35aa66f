package options

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"clustergym/internal/fault"
	"clustergym/live/kube"
)

// KubeFlags are the flags that say which Kubernetes cluster is meant, and how its objects are read.
type KubeFlags struct {
	Config, Context             string
	Namespaces, Gpus, Tolerated []string
}

// Add adds the flags.
func (k *KubeFlags) Add(f *pflag.FlagSet) {
	f.StringVar(&k.Config, "kubeconfig", "",
		"connect as `FILE` says (default $KUBECONFIG, a pod's service account, or .kube/config in your home)")
	f.StringVar(&k.Context, "context", "", "use context `NAME` of the kubeconfig (default its current one)")
	f.StringArrayVar(&k.Namespaces, "namespace", nil,
		"look at namespace `NAME`, can be repeated (default all, which takes rights in the whole cluster)")
	f.StringArrayVar(&k.Gpus, "gpu-resource", nil,
		"count resource `NAME` as GPUs, can be repeated (default nvidia.com/gpu and amd.com/gpu)")
}

// Find returns the configuration of the cluster: that of the flag, of $KUBECONFIG, of the pod in which this runs, or of
// the home.
func (k *KubeFlags) Find() (kube.Config, error) {
	c, err := k.place()
	if err != nil {
		return c, fault.Mistakef("%w", err)
	}
	c.Namespaces = k.Namespaces
	c.Reading.GPUs, c.Tolerated = k.Gpus, k.Tolerated
	return c, nil
}

func (k *KubeFlags) place() (kube.Config, error) {
	file := k.Config
	if file == "" {
		file = os.Getenv("KUBECONFIG")
	}
	if file != "" {
		return kube.Kubeconfig(file, k.Context)
	}
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" && k.Context == "" {
		return kube.InCluster(host, os.Getenv("KUBERNETES_SERVICE_PORT"), kube.ServiceAccountDir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return kube.Config{}, err
	}
	return kube.Kubeconfig(filepath.Join(home, ".kube", "config"), k.Context)
}
