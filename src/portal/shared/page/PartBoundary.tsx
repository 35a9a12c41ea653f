import { Component, type ReactNode } from "react"
import { ApiError } from "../../api/ApiError.ts"
import { ErrorNote } from "./ErrorNote.tsx"

interface State {
  readonly failure: string | undefined
}

/** Keeps a mistake of one part from taking the whole page away. */
export class PartBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { failure: undefined }

  static getDerivedStateFromError(cause: unknown): State {
    return { failure: cause instanceof Error ? cause.message : String(cause) }
  }

  override render(): ReactNode {
    const { failure } = this.state
    if (failure === undefined) return this.props.children
    return (
      <ErrorNote
        error={new ApiError(0, "portal", `This part of the page failed: ${failure}`)}
        onRetry={() => this.setState({ failure: undefined })}
      />
    )
  }
}
