package kube

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"clustergym/internal/ordinary"
	"clustergym/live"
	"clustergym/traces/kube"
)

// Config says where a cluster is, who asks, and how its objects are understood. InCluster and Kubeconfig make one.
type Config struct {
	// Server is the address of the API server, as https://10.0.0.1:6443. Name is what the cluster is called in snapshots.
	Server, Name string
	// CA are certificates in PEM that sign the server's; nil = the system's. ServerName is the name to look for in the
	// server's certificate in place of the address. Insecure takes any certificate.
	CA         []byte
	ServerName string
	Insecure   bool
	// Token, or what is in TokenFile, which is read again as often as it is used since tokens of service accounts expire.
	Token, TokenFile string
	// Cert and Key are a client certificate in PEM.
	Cert, Key []byte
	// Proxy is the address of a proxy; "" = none.
	Proxy string

	// Namespaces are those to look at; nil = all, which takes rights in the whole cluster.
	Namespaces []string
	// Reading says which resources are GPUs, and which labels name types and users.
	Reading kube.Reading
	// Tolerated are keys of taints that all jobs tolerate, besides those named as the GPUs themselves.
	Tolerated []string
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	d := kube.Default()
	if c.Reading.GPUs == nil {
		c.Reading.GPUs = d.GPUs
	}
	if c.Reading.Types == nil {
		c.Reading.Types = d.Types
	}
	if c.Reading.Users == nil {
		c.Reading.Users = d.Users
	}
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{""}
	}
	return c
}

// ServiceAccountDir is where a pod finds the credentials of its service account.
const ServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// InCluster is the configuration of a pod: host and port are its KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT,
// dir is ServiceAccountDir.
func InCluster(host, port, dir string) (Config, error) {
	if host == "" || port == "" {
		return Config{},
			errors.New("this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; want a kubeconfig file")
	}
	c := Config{Server: "https://" + net.JoinHostPort(host, port), Name: "kubernetes",
		TokenFile: filepath.Join(dir, "token")}
	var err error
	if c.CA, err = ordinary.Read(filepath.Join(dir, "ca.crt"), ordinary.Settings); err != nil {
		return Config{}, fmt.Errorf("the pod's service account: %w", err)
	}
	if _, err := os.Stat(c.TokenFile); err != nil {
		return Config{}, fmt.Errorf("the pod's service account: %w", err)
	}
	return c, nil
}

// kubeconfig is a kubeconfig file, as far as it matters here. Data are in base64.
type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Clusters       []struct {
		Name    string `yaml:"name"`
		Cluster struct {
			Server     string `yaml:"server"`
			CAFile     string `yaml:"certificate-authority"`
			CAData     string `yaml:"certificate-authority-data"`
			Insecure   bool   `yaml:"insecure-skip-tls-verify"`
			ServerName string `yaml:"tls-server-name"`
			Proxy      string `yaml:"proxy-url"`
		} `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string `yaml:"name"`
		User struct {
			Token     string    `yaml:"token"`
			TokenFile string    `yaml:"tokenFile"`
			CertFile  string    `yaml:"client-certificate"`
			CertData  string    `yaml:"client-certificate-data"`
			KeyFile   string    `yaml:"client-key"`
			KeyData   string    `yaml:"client-key-data"`
			Username  string    `yaml:"username"`
			As        string    `yaml:"as"`
			Exec      *struct { // a program that gives out credentials
				Command string `yaml:"command"`
			} `yaml:"exec"`
			AuthProvider *struct {
				Name string `yaml:"name"`
			} `yaml:"auth-provider"`
		} `yaml:"user"`
	} `yaml:"users"`
	Contexts []named `yaml:"contexts"`
}

// named is a context: a cluster and a user of it.
type named struct {
	Name    string `yaml:"name"`
	Context struct {
		Cluster string `yaml:"cluster"`
		User    string `yaml:"user"`
	} `yaml:"context"`
}

// Kubeconfig reads a kubeconfig file. context names one of its contexts; "" = its current one. Users with a token, a
// token file or a client certificate are taken. Those whose credentials come from a program (exec, auth-provider) are
// refused, since the program would run with the rights of this one; so are names and passwords, which API servers do
// not take any more.
func Kubeconfig(path, context string) (Config, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the caller's file
	if errors.Is(err, fs.ErrNotExist) && strings.ContainsRune(path, filepath.ListSeparator) {
		return Config{},
			fmt.Errorf("%s names several files, want one: kubectl config view --flatten --minify writes them into one", path)
	}
	if err != nil {
		return Config{}, fmt.Errorf("kubeconfig: %w", err)
	}
	var k kubeconfig
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&k); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, fmt.Errorf("%s is no kubeconfig: %w", path, err)
	}
	for { // empty documents may follow, of a --- at the end
		var more any
		if err := d.Decode(&more); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return Config{}, fmt.Errorf("%s is no kubeconfig: %w", path, err)
		}
		if more != nil {
			return Config{},
				fmt.Errorf("%s has a second document behind ---, want one: kubectl config view --flatten --minify writes it", path)
		}
	}
	if context == "" {
		context = k.CurrentContext
	}
	if context == "" {
		return Config{}, fmt.Errorf("%s has no current-context, want the name of a context", path)
	}
	i := slices.IndexFunc(k.Contexts, func(c named) bool { return c.Name == context })
	if i < 0 {
		var names []string
		for _, c := range k.Contexts {
			names = append(names, c.Name)
		}
		return Config{}, fmt.Errorf("%s has no context %q, want one of %s", path, context, strings.Join(names, ", "))
	}
	of := k.Contexts[i].Context
	c := Config{Name: of.Cluster}
	if err := k.cluster(&c, of.Cluster, filepath.Dir(path)); err != nil {
		return Config{}, fmt.Errorf("%s, context %q: %w", path, context, err)
	}
	if err := k.user(&c, of.User, filepath.Dir(path)); err != nil {
		return Config{}, fmt.Errorf("%s, context %q: %w", path, context, err)
	}
	return c, nil
}

func (k *kubeconfig) cluster(c *Config, name, dir string) (err error) {
	for _, e := range k.Clusters {
		if e.Name != name {
			continue
		}
		c.Server, c.ServerName, c.Insecure, c.Proxy = e.Cluster.Server, e.Cluster.ServerName, e.Cluster.Insecure,
			e.Cluster.Proxy
		if u, err := url.Parse(c.Server); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("cluster %q: server %q, want an address as https://10.0.0.1:6443", name, c.Server)
		}
		if c.CA, err = pemOf(e.Cluster.CAData, e.Cluster.CAFile, dir); err != nil {
			return fmt.Errorf("cluster %q: certificate-authority: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf("there is no cluster %q", name)
}

func (k *kubeconfig) user(c *Config, name, dir string) (err error) {
	const instead = "want a token, a tokenFile or a client certificate (kubectl create token makes one for a service " +
		"account)"
	for _, e := range k.Users {
		if e.Name != name {
			continue
		}
		u := &e.User
		switch {
		case u.Exec != nil:
			return fmt.Errorf("%w: user %q gets its credentials from the program %q, %s", live.ErrUnsupported, name,
				u.Exec.Command, instead)
		case u.AuthProvider != nil:
			return fmt.Errorf("%w: user %q gets its credentials from the auth-provider %q, %s", live.ErrUnsupported, name,
				u.AuthProvider.Name, instead)
		case u.Username != "":
			return fmt.Errorf("%w: user %q has a name and a password, %s", live.ErrUnsupported, name, instead)
		case u.As != "":
			return fmt.Errorf("%w: user %q acts as %q, %s", live.ErrUnsupported, name, u.As, instead)
		}
		c.Token = u.Token
		if u.TokenFile != "" {
			c.Token, c.TokenFile = "", beside(u.TokenFile, dir)
		}
		if c.Cert, err = pemOf(u.CertData, u.CertFile, dir); err != nil {
			return fmt.Errorf("user %q: client-certificate: %w", name, err)
		}
		if c.Key, err = pemOf(u.KeyData, u.KeyFile, dir); err != nil {
			return fmt.Errorf("user %q: client-key: %w", name, err)
		}
		if (c.Cert == nil) != (c.Key == nil) {
			return fmt.Errorf("user %q has one of client-certificate and client-key, want both", name)
		}
		return nil
	}
	if name == "" {
		return nil // nobody in particular: a server without authentication
	}
	return fmt.Errorf("there is no user %q", name)
}

// pemOf returns the data, or what is in the file.
func pemOf(data, file, dir string) ([]byte, error) {
	switch {
	case data != "":
		return base64.StdEncoding.DecodeString(data)
	case file != "":
		return ordinary.Read(beside(file, dir), ordinary.Settings)
	}
	return nil, nil
}

// beside returns a path that is relative to the folder of the kubeconfig.
func beside(file, dir string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}
