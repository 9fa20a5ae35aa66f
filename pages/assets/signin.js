"use strict";
// The part of the address after # says which page to show; a browser keeps it through the answer of a form that has it. This script
// stands in the head of the page, so that it has run before there is a form to submit.
document.addEventListener("submit", (e) => { e.target.action = "signin" + location.hash; });
