import { Link } from "@tanstack/react-router"
import { PageHeader } from "../shared/page/PageHeader.tsx"

interface NotFoundProps {
  /** The home page of whoever is signed in. */
  readonly home?: "/" | "/my"
}

export const NotFound = ({ home = "/" }: NotFoundProps) => (
  <>
    <PageHeader title="There is no such page" />
    <p>
      The address may be of another version. <Link to={home}>Go to the home page</Link>
      {home === "/" && (
        <>
          , or press <kbd>⌘K</kbd> or <kbd>Ctrl K</kbd> to find something by its id
        </>
      )}
      .
    </p>
  </>
)

/** A mistake of the portal itself. A new version of the server also ends here, when the files of this one are gone. */
export const PageFailed = ({ error }: { readonly error: unknown }) => (
  <main>
    <PageHeader title="This page failed" />
    <p>{error instanceof Error ? error.message : String(error)}</p>
    <p>
      <button type="button" onClick={() => window.location.reload()}>
        Load the portal again
      </button>
    </p>
  </main>
)
