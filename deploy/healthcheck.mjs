// Asks the control listener of the same container. Without an argument: whether the process is ready to serve.
import process from "node:process"

const [path = "/admin-ui/readyz"] = process.argv.slice(2)
const address = process.env.GATEWAY_CONTROL_BIND_ADDR || "127.0.0.1:8081"

try {
  const response = await fetch(`http://${address}${path}`, { signal: AbortSignal.timeout(4_000) })
  process.stdout.write(`${response.status} ${await response.text()}\n`)
  process.exitCode = response.ok ? 0 : 1
} catch (error) {
  process.stderr.write(`${address} does not respond: ${error.cause?.message ?? error.message}\n`)
  process.exitCode = 1
}
