// Plain JavaScript, and loaded before anything else: a Node that is too old cannot read the rest of the program, and would
// say so in words that tell nobody what to do.
import process from "node:process"

const needed = [22, 19]
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)

if (major < needed[0] || (major === needed[0] && minor < needed[1])) {
  process.stderr.write(
    `svc-runtime needs Node ${needed.join(".")} or later, and this is ${process.version}: install a newer one. In a checkout of svc-runtime, "npm ci" without --omit=dev brings its own.\n`
  )
  process.exit(78)
}
