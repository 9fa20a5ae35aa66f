// Command etcd keeps the data of the Kubernetes that make kubernetes starts: one member, on the loopback address,
// without authentication. It ends on SIGTERM.
package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	dir := flag.String("dir", "", "folder of the data")
	client := flag.String("client", "", "address that clients connect to, as 127.0.0.1:2379")
	peer := flag.String("peer", "", "address of the member itself")
	flag.Parse()
	if err := run(*dir, *client, *peer); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

func run(dir, client, peer string) error {
	c := embed.NewConfig()
	c.Dir = dir
	c.LogLevel = "warn"
	c.UnsafeNoFsync = true // a test's data need not survive the machine
	clients, peers := []url.URL{{Scheme: "http", Host: client}}, []url.URL{{Scheme: "http", Host: peer}}
	c.ListenClientUrls, c.AdvertiseClientUrls = clients, clients
	c.ListenPeerUrls, c.AdvertisePeerUrls = peers, peers
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case err := <-e.Err():
		return err
	case <-stop:
		return nil
	}
}
