// Keeps the program compiled, so that the next start of a checkout takes half the time. `npm start` loads it before the
// program. The folder is the checkout's own: in the shared one for temporary files, others could put code of theirs.
import module from "node:module"
import { fileURLToPath } from "node:url"

// Node 22.0 has no such cache
module.enableCompileCache?.(fileURLToPath(new URL("../node_modules/.cache/compiled", import.meta.url)))
