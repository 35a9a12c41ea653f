import { createServer } from "node:http"

/** A studio that offers these services. */
export const StudioServer = {
  start: async (services: ReadonlyArray<object>) => {
    const server = createServer((_, response) => {
      response.setHeader("content-type", "application/json")
      response.end(JSON.stringify({ services }))
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return {
      url: `http://127.0.0.1:${port}`,
      stop: () => new Promise<void>((resolve) => server.close(() => resolve()))
    }
  }
}
