// Package worlrtgs reproduces the study of WORL-RTGS, which plans task graphs by whale optimisation with a learned
// generator of plans. README.md lists which parts are published and which are ours.
package worlrtgs
