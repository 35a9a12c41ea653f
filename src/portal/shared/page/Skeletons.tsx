import { Skeleton } from "@mantine/core"

/** Holds the place of a page whose code is still on its way. */
export const Skeletons = () => (
  <div aria-hidden="true">
    <Skeleton height={24} width={180} mb={16} />
    <Skeleton height={90} mb={12} />
    <Skeleton height={320} />
  </div>
)
