import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as tls from "node:tls"
import { Effect } from "effect"

/** Node trusts it, until the scope closes. */
export const trusted = (certificate: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = tls.getCACertificates("default")
      tls.setDefaultCACertificates([...before, certificate])
      return before
    }),
    (before) => Effect.sync(() => tls.setDefaultCACertificates(before))
  )

/** For `localhost`; made anew for each run, so that no private key lies in the repository. */
export const selfSigned = (): { readonly certificate: string; readonly key: string } => {
  const folder = mkdtempSync(join(tmpdir(), "svc-tls-"))
  try {
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")]
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    const fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    execFileSync("openssl", ["req", "-x509", ...fresh, ...subject, "-keyout", key, "-out", cert], { stdio: "ignore" })
    return { certificate: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
