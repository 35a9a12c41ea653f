import type { Server, Socket } from "node:net"

const servers = new Set<Server>()

export const trackServer = <S extends Server>(server: S): S => {
  server.on("listening", () => servers.add(server))
  server.on("close", () => servers.delete(server))
  return server
}

/**
 * Returns whether a socket is connected to a listener of this process. The gateway refuses such connections to
 * untrusted origins, because some listeners trust clients on the same machine. A connection within one machine has the
 * same address at both ends.
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
