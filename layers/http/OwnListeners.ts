import type { Server, Socket } from "node:net"

/** A server stays here until its last connection has closed, because requests on that connection are still served. */
const portByServer = new Map<Server, number>()
/** Ports of listeners that another process of the same program has open. */
const portsElsewhere = new Set<number>()

export const trackServer = <S extends Server>(server: S): S => {
  server.on("listening", () => {
    const address = server.address()
    if (address !== null && typeof address === "object") portByServer.set(server, address.port)
  })
  server.on("close", () => portByServer.delete(server))
  return server
}

/** Returns the ports of this process's listeners. */
export const ports = (): ReadonlyArray<number> => [...portByServer.values()]

/** Treats the port of another process of the same program like a port of this one. */
export const addPortElsewhere = (port: number): void => {
  portsElsewhere.add(port)
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
  return remotePort !== undefined && (portsElsewhere.has(remotePort) || ports().includes(remotePort))
}
