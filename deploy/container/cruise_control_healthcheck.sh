#!/bin/sh
# Strimzi's probes of Cruise Control run this; it exits with 1 unless the API answers.
exec python3 -I "$(dirname "$0")/healthcheck.py"
