"use strict";
// The part of the address after # says which page to show; a browser keeps it through the answer of a form that has it.
document.getElementById("signin").action = "signin" + location.hash;
