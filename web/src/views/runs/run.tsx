export default function Run() { return <h1>Run</h1>; }
