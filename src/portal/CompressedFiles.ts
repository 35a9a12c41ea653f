import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import type { Plugin } from "vite"

const toBrotli = promisify(brotliCompress)
const toGzip = promisify(gzip)

/** Below this, a response takes as many packets with its compressed form as without it. */
const leastBytes = 1_024

/** Writes every file a second and a third time, compressed as far as possible: the server sends these as they are. */
export const compressedFiles = (): Plugin => ({
  name: "compressed-files",
  apply: "build",
  enforce: "post",
  generateBundle: {
    order: "post",
    async handler(_, bundle) {
      const files = Object.values(bundle).map((file) => ({
        name: file.fileName,
        bytes: Buffer.from(file.type === "chunk" ? file.code : file.source)
      }))
      await Promise.all(
        files
          .filter(({ bytes, name }) => bytes.length >= leastBytes && /\.(?:js|css|svg)$/.test(name))
          .map(async ({ bytes, name }) => {
            const [br, gz] = await Promise.all([
              toBrotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }),
              toGzip(bytes, { level: constants.Z_BEST_COMPRESSION })
            ])
            this.emitFile({ type: "asset", fileName: `${name}.br`, source: br })
            this.emitFile({ type: "asset", fileName: `${name}.gz`, source: gz })
          })
      )
    }
  }
})
