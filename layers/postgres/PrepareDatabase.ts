import { write } from "./PreparedDatabase.ts"

/** A step of the build: `npm run build:database`. */
await write()
