// Package server serves environments to many clients over one listener, by the protocol of package wire.
package server

import (
	_ "github.com/gorilla/websocket"                            // transport
	_ "github.com/prometheus/client_golang/prometheus/promhttp" // metrics
)
