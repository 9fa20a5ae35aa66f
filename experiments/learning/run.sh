#!/usr/bin/env bash
# Installs the libraries that ours are compared with (some 6 GB, once for each requirements.txt, below .tools), and compares.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
venv="$root/.tools/learning-$(sha256sum <"$here/requirements.txt" | cut -c1-12)"

if [ ! -e "$venv/have" ]; then
	case " $* " in *" -h "* | *" --help "*) exec python3 "$here/compare.py" --help ;; esac
	echo "installing the libraries into $venv, some 6 GB"
	rm -rf "$root"/.tools/learning-* # what other pins left behind goes first
	# Where Python has no venv (Debian keeps it in a package of its own), virtualenv makes the same.
	python3 -m venv "$venv" >/dev/null 2>&1 || {
		rm -rf "$venv"
		python3 -m pip install -q --target "$venv-virtualenv" virtualenv &&
			PYTHONPATH="$venv-virtualenv" python3 -m virtualenv -q "$venv"
	} || {
		echo "run.sh: needs python3 with venv (Debian: apt-get install python3-venv) or pip" >&2
		exit 1
	}
	"$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$here/requirements.txt"
	touch "$venv/have"
fi
exec "$venv/bin/python" -B "$here/compare.py" "$@"
