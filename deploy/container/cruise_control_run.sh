#!/bin/sh
# Start plimsoll where Strimzi starts Cruise Control: from its variables, secrets and config map.
#
# Options of `plimsoll service` are those in PLIMSOLL_OPTIONS; settings are PLIMSOLL_* variables, or keys
# `plimsoll.*` of spec.cruiseControl.config, such as plimsoll.triggers.uneven_load: act.
set -eu

# This file is /opt/cruise-control/cruise_control_run.sh, below a root that is empty in the image.
here=$(cd "$(dirname "$0")" && pwd)
root=${here%/opt/cruise-control}
configuration=$here/custom-config
certificates=$root/etc/cruise-control/cc-certs
authorities=$root/etc/cruise-control/cluster-ca-certs
logins=$here/api-auth-config/cruise-control.authFile
properties=$configuration/cruisecontrol.properties
# Strimzi mounts additional volumes below /mnt alone.
volume=${PLIMSOLL_VOLUME_HOME:-$root/mnt/plimsoll}
export PLIMSOLL_VOLUME_HOME="$volume"

fail() {
  echo "plimsoll: $1" >&2
  exit 2
}

# Set a variable unless the container's own environment has it.
default() {
  if eval "[ -z \"\${$1+set}\" ]"; then
    export "$1=$2"
  fi
}

# Value of a key of cruisecontrol.properties; empty without it.
configured() {
  [ ! -f "$properties" ] || sed -n "s/^$1[[:space:]]*=[[:space:]]*//p" "$properties" | tail -n 1
}

[ -n "${STRIMZI_KAFKA_BOOTSTRAP_SERVERS:-}" ] ||
  fail "STRIMZI_KAFKA_BOOTSTRAP_SERVERS is not set; this script is for containers that Strimzi starts"

# ---- settings of the custom resource
given=" "
if [ -f "$properties" ]; then
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    plimsoll.*=*)
      key=${line%%=*}
      name=$(printf %s "$key" | tr -d '[:space:]' | sed 's/\./__/2g; s/\./_/' | tr '[:lower:]' '[:upper:]')
      case $name in
      *[!A-Z0-9_]*) fail "$properties: $key is not the name of a setting" ;;
      esac
      # Of a key that is repeated, the last value counts, as in Java.
      case $given in
      *" $name "*) unset "$name" ;;
      esac
      eval "[ -n \"\${$name+set}\" ]" || given="$given$name "
      value=${line#*=}
      default "$name" "${value#"${value%%[![:space:]]*}"}"
      ;;
    esac
  done <"$properties"
fi

# ---- the connection to Kafka
mkdir -p "$volume/strimzi" 2>/dev/null || fail "cannot write to $volume; mount a volume there that user $(id -u) may write to"
client=$volume/strimzi/client.properties
umask 077
if [ "${STRIMZI_CC_TLS_ENABLED:-true}" = true ]; then
  cat "$authorities"/*.crt >"$volume/strimzi/ca.pem" 2>/dev/null ||
    fail "$authorities has no certificate *.crt of the cluster's authority"
  {
    echo "security.protocol=SSL"
    echo "ssl.ca.location=$volume/strimzi/ca.pem"
    if [ "${STRIMZI_CC_MTLS_ENABLED:-true}" = true ]; then
      echo "ssl.certificate.location=$certificates/cruise-control.crt"
      echo "ssl.key.location=$certificates/cruise-control.key"
    fi
  } >"$client"
else
  echo "security.protocol=PLAINTEXT" >"$client"
fi
default PLIMSOLL_CLIENT_PROPERTIES "$client"
default PLIMSOLL_BOOTSTRAP_SERVER "$STRIMZI_KAFKA_BOOTSTRAP_SERVERS"
[ ! -f "$configuration/capacity.json" ] || default PLIMSOLL_CAPACITY_FILE "$configuration/capacity.json"
topic=$(configured 'metric\.reporter\.topic')
[ -z "$topic" ] || default PLIMSOLL_CRUISE_CONTROL_TOPIC "$topic"

# ---- Cruise Control's API
default PLIMSOLL_SERVICE__CRUISE_CONTROL_LISTEN "0.0.0.0:${API_PORT:-9090}"
default PLIMSOLL_SERVICE__CRUISE_CONTROL_API execute
# What it says of goals; certificates and logins below go before what it says of those.
[ ! -f "$properties" ] || default PLIMSOLL_SERVICE__CRUISE_CONTROL_PROPERTIES "$properties"
if [ "${STRIMZI_CC_API_SSL_ENABLED:-true}" = true ]; then
  default PLIMSOLL_SERVICE__TLS_CERTIFICATE "$certificates/cruise-control.crt"
  default PLIMSOLL_SERVICE__TLS_KEY "$certificates/cruise-control.key"
fi
if [ "${STRIMZI_CC_API_AUTH_ENABLED:-true}" = true ]; then
  default PLIMSOLL_SERVICE__CRUISE_CONTROL_LOGINS "$logins"
fi
# Strimzi sets it where spec.cruiseControl has metricsConfig, and then opens the port to everyone.
[ "${CRUISE_CONTROL_JMX_EXPORTER_ENABLED:-false}" != true ] || default PLIMSOLL_SERVICE__METRICS_LISTEN 0.0.0.0:9404
# A rolling update continues what the former container had begun.
default PLIMSOLL_SERVICE__RESUME true

# ---- KafkaRebalance resources order what is executed; its own plans wait for a person, unless a trigger is set
for trigger in under_min_isr dead_broker dead_log_dir over_capacity rule_violated slow_broker empty_broker uneven_load; do
  default "PLIMSOLL_TRIGGERS__$(echo $trigger | tr '[:lower:]' '[:upper:]')" ask
done

options=${PLIMSOLL_OPTIONS-"--auto --limits conservative --allow-changes"}
unset PLIMSOLL_OPTIONS
# Options are words; none of them needs a blank.
# shellcheck disable=SC2086
exec plimsoll-container.sh service --log-format json $options "$@"
