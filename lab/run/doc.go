// Package run is gymctl train: it trains agents as a config.Config says, resumes them bit for bit, has them compared
// with their baselines, and combines several seeds.
package run
