import { connect, type Socket } from "node:net"
import { constants, setPriority } from "node:os"
import { type AttackName, attackNames } from "./Attacks.ts"
import { path, silentModel } from "./Scenario.ts"

/**
 * A hostile client, a process of its own: `node test/bench/Attacker.ts <origin> <credential> <connections>
 * [attack,…]`. Every connection makes one of the attacks below, again and again; by default all of them have as many.
 */

// real attackers have processors of their own: what theirs take here is not to be taken for the gateway's slowness
setPriority(constants.priority.PRIORITY_LOW)

const [origin = "", credential = "", connections = "0", only = ""] = process.argv.slice(2)
const { hostname, port } = new URL(origin)

const head = (fields: string, target: string = path): string =>
  `POST ${target} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${credential}\r\n${fields}\r\n\r\n`
const json = (length: number) => `content-type: application/json\r\ncontent-length: ${length}`

const oneByteChunks = Buffer.concat([
  Buffer.from(head("content-type: application/json\r\ntransfer-encoding: chunked")),
  Buffer.from("1\r\n \r\n".repeat(1_000_000))
])
const framed = (type: string, body: string): Buffer =>
  Buffer.from(`${head(`content-type: ${type}\r\ncontent-length: ${body.length}`)}${body}`)
const nested = framed("application/json", `{"model":"bench-instant","messages":${"[".repeat(1_000_000)}`)
const form = framed("application/x-www-form-urlencoded", `model=bench-instant${"&a=b".repeat(250_000)}`)
const asking = (model: string, stream: boolean) =>
  framed("application/json", JSON.stringify({ model, stream, messages: [{ role: "user", content: "x" }] }))

/** How a connection goes on, once it is there. */
const attacks: Readonly<Record<AttackName, (socket: Socket) => void>> = {
  trickle: (socket) => {
    socket.write(head(json(1_000_000)))
    const trickling = setInterval(() => socket.write(" "), 2_000)
    socket.once("close", () => clearInterval(trickling))
  },
  chunks: (socket) => socket.write(oneByteChunks),
  nested: (socket) => socket.write(nested),
  form: (socket) => socket.write(form),
  silent: (socket) => socket.write(asking(silentModel, false)),
  unread: (socket) => {
    socket.pause()
    for (let index = 0; index < 4; index++) socket.write(asking("bench-burst", true))
  }
}
const chosen = attackNames.filter((name) => only === "" || only.split(",").includes(name))

const longestMs = 20_000
const pauseMs = 250

const attack = (index: number): void => {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  const timer = setTimeout(() => socket.destroy(), longestMs + (index % 100) * 100)
  socket.on("error", () => {})
  // as soon as it is answered, it begins anew
  socket.on("data", () => socket.destroy())
  socket.once("connect", () => {
    const name = chosen[index % chosen.length]
    if (name !== undefined) attacks[name](socket)
  })
  socket.once("close", () => {
    clearTimeout(timer)
    setTimeout(() => attack(index), pauseMs)
  })
}

for (let index = 0; index < Number(connections); index++) setTimeout(() => attack(index), index * 5)
process.once("disconnect", () => process.exit())
