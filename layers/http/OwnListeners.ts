import type { Server, Socket } from "node:net"

/** The servers of this process that listen now. */
const servers = new Set<Server>()

/** Remembers the server for as long as it listens. */
export const trackServer = <S extends Server>(server: S): S => {
  server.on("listening", () => servers.add(server))
  server.on("close", () => servers.delete(server))
  return server
}

/**
 * Whether a connected socket leads to a listener of this process. Some of them trust whoever comes from this machine, so
 * an address that somebody typed must not lead there. A connection to an own address has it on both ends.
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
