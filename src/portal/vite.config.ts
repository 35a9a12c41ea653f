import { fileURLToPath } from "node:url"
import react from "@vitejs/plugin-react"
import { defineConfig } from "vite"
import { acyclicFiles } from "./AcyclicFiles.ts"
import { applicationFiles } from "./ApplicationFiles.ts"
import { compileHints } from "./CompileHints.ts"
import { compressedFiles } from "./CompressedFiles.ts"

const root = fileURLToPath(new URL(".", import.meta.url))

/** The program to which `npm run portal` passes on what is not part of the portal. */
const program = process.env["SVC_PORTAL_TARGET"] ?? "http://127.0.0.1:8081"

/** The frame of the application is made of these packages, each of which would else be a file of its own. */
const libraries = [
  "@mantine",
  "@tabler",
  "@floating-ui",
  "@tanstack",
  "react-number-format",
  "clsx",
  // these belong to Mantine's dialogs
  "react-remove-scroll",
  "react-style-singleton",
  "use-callback-ref",
  "use-sidecar",
  "aria-hidden",
  "get-nonce",
  "tslib",
  "use-sync-external-store"
]

export default defineConfig({
  root,
  base: "/admin-ui/",
  plugins: [react(), applicationFiles(), acyclicFiles(), compileHints(), compressedFiles()],
  cacheDir: fileURLToPath(new URL("../../node_modules/.cache/portal", import.meta.url)),
  build: {
    outDir: fileURLToPath(new URL("../../dist/portal", import.meta.url)),
    emptyOutDir: true,
    // the policy of the page allows nothing from `data:` addresses
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    chunkSizeWarningLimit: 700,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // A group also takes what its modules import, so the files do not import each other in circles.
          groups: [
            // The sign-in page loads this alone.
            { name: "start", test: /portal\/main\.tsx$/, priority: 3 },
            {
              name: "libraries",
              test: new RegExp(`node_modules/(${libraries.join("|")})`),
              minShareCount: 4,
              priority: 2
            },
            // A page would else load forty files of a kilobyte, each of which costs a round trip.
            {
              name: "parts",
              test: /portal\/(address|shared)\/(?!charts\/(Time|Live)|editor|graph|diff\/DiffTree)/,
              minShareCount: 3,
              maxModuleSize: 20_000,
              priority: 1
            }
          ]
        }
      }
    }
  },
  server: {
    port: 5173,
    proxy: {
      // a navigation is the portal's own; everything else below these paths is the program's
      "^/admin-ui/(admin|v1|readyz|session|live|find|tasks|docs|openapi.json|upstream-ui)": {
        target: program,
        bypass: ({ headers, url }) =>
          headers.accept?.includes("text/html") === true && !url?.startsWith("/admin-ui/docs")
            ? "/admin-ui/"
            : undefined
      }
    }
  }
})
