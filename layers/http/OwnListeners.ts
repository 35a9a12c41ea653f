import type { Server, Socket } from "node:net"

const servers = new Set<Server>()

export const trackServer = <S extends Server>(server: S): S => {
  server.on("listening", () => servers.add(server))
  server.on("close", () => servers.delete(server))
  return server
}

/**
 * True when a connected socket leads to a listener of this process. Some listeners trust clients on the same machine,
 * so an address that an operator enters must not lead there. A connection to the machine itself has the same address on
 * both ends.
 */
export const leadsToOwnListener = ({ localAddress, remoteAddress, remotePort }: Socket): boolean => {
  if (remoteAddress === undefined || (remoteAddress !== localAddress && !/^(?:::ffff:)?127\./.test(remoteAddress))) {
    return false
  }
  for (const server of servers) {
    const address = server.address()
    if (address !== null && typeof address === "object" && address.port === remotePort) return true
  }
  return false
}
