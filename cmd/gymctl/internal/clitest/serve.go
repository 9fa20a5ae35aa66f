package clitest

import (
	"time"
)

// Patience is how long any wait may take in these tests.
const Patience = 30 * time.Second
