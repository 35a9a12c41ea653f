import { PageHeader } from "../../shared/page/PageHeader.tsx"

const StudioPage = () => <PageHeader title="Studio" />

export default StudioPage
