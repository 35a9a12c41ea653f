#!/bin/sh
# Makes .env of .env.example, with a random value for each secret that is empty there. Never replaces an existing file.
set -eu
umask 077
cd "$(dirname "$0")"

if [ -e .env ]; then
  echo "deploy/.env exists already: remove it first, or edit it." >&2
  exit 1
fi

hex() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

sed \
  -e "s/^POSTGRES_PASSWORD=$/&$(hex)/" \
  -e "s/^REDIS_PASSWORD=$/&$(hex)/" \
  -e "s/^RABBITMQ_PASSWORD=$/&$(hex)/" \
  -e "s/^GRAFANA_PASSWORD=$/&$(hex)/" \
  -e "s/^SVC_STATUS_TOKEN=$/&$(hex)/" \
  -e "s/^GATEWAY_ADMIN_TOKEN=$/&op_live_$(hex)/" \
  -e "s|^GATEWAY_ENCRYPTION_KEY=$|&$(head -c 32 /dev/urandom | base64)|" \
  .env.example > .env.new
mv .env.new .env
echo "deploy/.env is new. It contains secrets: keep it, and out of every repository."
